/** Returns another Node, which npm has as a package for each platform; the running one if it has this major version. */
export declare function nodeProgram(major: number): { readonly node: string };
