/** Where packages can be entered: each specifier of another package's exports, and the source that it stands for. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const packages = fileURLToPath(new URL("../../packages/", import.meta.url));

/** `{ specifier: "@longshore/csi/conformance", source: "/…/packages/csi/src/conformance/index.ts" }`, and so on. */
export const packageEntries = readdirSync(packages).flatMap((name) => {
  const { exports } = JSON.parse(readFileSync(`${packages}${name}/package.json`, "utf8"));
  return Object.entries(exports).flatMap(([at, forms]) => {
    const built = /^\.\/dist\/(.+)\.js$/.exec(forms.default ?? "")?.[1];
    if (built === undefined) return []; // A file that is no module.
    return [{ specifier: `@longshore/${name}${at.slice(1)}`, source: `${packages}${name}/src/${built}.ts` }];
  });
});
