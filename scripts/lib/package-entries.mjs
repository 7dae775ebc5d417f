/** Where packages can be entered: each specifier of another package's exports, and the source that it stands for. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const packages = fileURLToPath(new URL("../../packages/", import.meta.url));

/**
 * `{ specifier: "@longshore/csi/transport", source: "/…/packages/csi/src/transport.ts", isPublished: true }`, and so on. What is
 * not published is not built either: its exports name sources.
 */
export const packageEntries = readdirSync(packages).flatMap((name) => {
  const { exports, private: isPrivate = false } = JSON.parse(
    readFileSync(`${packages}${name}/package.json`, "utf8"),
  );
  return Object.entries(exports).flatMap(([at, forms]) => {
    const module = /^\.\/(?:dist\/(.+)\.js|src\/(.+)\.ts)$/.exec(forms.default ?? forms);
    if (module === null) return []; // A file that is no module.
    const source = `${packages}${name}/src/${module[1] ?? module[2]}.ts`;
    return [{ specifier: `@longshore/${name}${at.slice(1)}`, source, isPublished: !isPrivate }];
  });
});
