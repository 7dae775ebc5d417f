/** One entry of a package: what importers write, and the source that it stands for. */
export const packageEntries: readonly { readonly specifier: string; readonly source: string }[];
