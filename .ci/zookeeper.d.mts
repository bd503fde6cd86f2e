export declare const ZOOKEEPER_PACKAGES: readonly string[];
export declare const ZOOKEEPER_FETCH: string;
export declare const zookeeperClassPath: () => string | undefined;
export declare const canFetchZooKeeper: () => boolean;
export declare const fetchZooKeeper: () => void;
