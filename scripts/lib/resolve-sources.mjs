/** Tells dependency-cruiser that `@longshore/NAME` is the source of that package, built or not. */
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

const packages = fileURLToPath(new URL("../../packages/", import.meta.url));

export default {
  resolve: {
    // Packages of types alone have declarations where the import says .js.
    extensionAlias: { ".js": [".js", ".ts", ".d.ts"] },
    alias: Object.fromEntries(
      readdirSync(packages).map((name) => [`@longshore/${name}$`, `${packages}${name}/src/index.ts`]),
    ),
  },
};
