// Scripts outside of this repository import it from here.
export * from '../servers/zookeeper-server.js';
