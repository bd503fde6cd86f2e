import { STORES_ON_SERVERS } from '../../support/stores/stores.js';
import { describeStores } from '../stores.contract.js';

describeStores(STORES_ON_SERVERS);
