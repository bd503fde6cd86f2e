export declare const otherPackages: string | undefined;
export declare const isElsewhere: (specifier: string) => boolean;
