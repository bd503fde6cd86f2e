import { STORES_ON_SERVERS } from '../../../support/stores/stores.js';
import { describeSeam } from '../seam.property.js';

describeSeam(STORES_ON_SERVERS);
