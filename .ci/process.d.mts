export declare const onPath: (...names: readonly string[]) => string | undefined;
export declare const postgresProgram: (name: string) => string | undefined;
export declare const CHROMIUM: readonly string[];
