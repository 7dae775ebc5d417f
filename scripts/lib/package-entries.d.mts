/** One entry of a package: what importers write, and the source that it stands for. */
export const packageEntries: readonly {
  readonly specifier: string;
  readonly source: string;
  /** False for an entry of a private package, which is neither built nor published. */
  readonly isPublished: boolean;
}[];
