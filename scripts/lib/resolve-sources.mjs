/** Resolves imports between packages to their sources for dependency-cruiser, built or not. */
import { packageEntries } from "./package-entries.mjs";

export default {
  resolve: {
    // Packages of types alone have declarations where the import says .js.
    extensionAlias: { ".js": [".js", ".ts", ".d.ts"] },
    alias: Object.fromEntries(packageEntries.map(({ specifier, source }) => [`${specifier}$`, source])),
  },
};
