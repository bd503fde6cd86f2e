export declare const onPath: (...names: readonly string[]) => string | undefined;
