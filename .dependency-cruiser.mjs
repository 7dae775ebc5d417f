/**
 * The floors of the house: a package imports only from floors below its own, only through the entries that the other
 * package's exports name, and nothing imports in circles.
 */
import { readdirSync, readFileSync } from "node:fs";
import { packageEntries } from "./scripts/lib/package-entries.mjs";

const floors = [
  ["runtime", "translation"],
  ["kube", "csi"],
  ["conformance", "storage", "apiserver"],
  ["volumes", "sidecars", "deployment", "migration"],
  ["reference-driver"],
  ["local"],
  ["simulation", "dashboard"],
  ["cli"],
  ["testing"],
];

const tests = "(\\.(test|contract|bench)\\.ts$|/testing/)";
const of = (names) => `^packages/(${names.join("|")})/`;
const all = floors.flat();

const homeless = readdirSync(new URL("packages/", import.meta.url)).filter((name) => !all.includes(name));
if (homeless.length > 0) throw new Error(`packages without a floor: ${homeless}`);

/** What a package may import is what its project references; that must lie below it. */
const referencesOf = (name) =>
  JSON.parse(
    readFileSync(new URL(`packages/${name}/tsconfig.json`, import.meta.url), "utf8"),
  ).references?.map(({ path }) => path.replace("../", "")) ?? [];

const floorRules = floors.flatMap((floor, height) =>
  floor.map((name) => {
    const below = floors.slice(0, height).flat();
    const allowed = referencesOf(name);
    const upward = allowed.filter((other) => !below.includes(other));
    if (upward.length > 0) {
      throw new Error(`packages/${name}/tsconfig.json references ${upward}: not below floor ${height}`);
    }
    return {
      name: `floor-${height}-${name}`,
      comment: `${name} may import from: ${allowed.join(", ") || "nothing of ours"}`,
      severity: "error",
      from: { path: of([name]), pathNot: tests },
      to: { path: of(all.filter((other) => other !== name && !allowed.includes(other))) },
    };
  }),
);

/** The sources of all entries, as they are from the root. */
const entries = packageEntries.map(({ source }) => `^${source.slice(source.lastIndexOf("/packages/") + 1)}$`);

export default {
  forbidden: [
    ...floorRules,
    {
      name: "no-cycle",
      comment: "modules that import each other in a circle have no order in which to be read",
      severity: "error",
      from: {},
      to: { circular: true },
    },
    {
      name: "through-an-entry",
      comment:
        "another package is imported as @longshore/NAME, or by another entry of its exports, never by a path into it",
      severity: "error",
      from: { path: "^packages/([^/]+)/src/", pathNot: tests },
      to: { path: "^packages/[^/]+/src/", pathNot: ["^packages/$1/", ...entries] },
    },
    {
      name: "resolvable",
      comment: "a package that is imported stands in the package.json beside",
      severity: "error",
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: "translation-needs-nothing",
      comment: "translation runs in a browser and depends on nothing",
      severity: "error",
      from: { path: of(["translation"]), pathNot: tests },
      to: { pathNot: of(["translation"]) },
    },
    {
      name: "no-tests-in-products",
      comment: "what is published never imports a test or test support",
      severity: "error",
      from: { path: "^packages/[^/]+/src/", pathNot: tests },
      to: { path: tests },
    },
    {
      name: "declared-dependency",
      comment: "what is published imports only what its package.json declares as a dependency",
      severity: "error",
      from: { path: "^packages/[^/]+/src/", pathNot: tests },
      to: { dependencyTypes: ["npm-dev", "npm-no-pkg", "npm-unknown"], pathNot: "^packages/" },
    },
  ],
  options: {
    // The TypeScript of this repository is native and gives dependency-cruiser no parser: swc stands in.
    parser: "swc",
    tsPreCompilationDeps: true,
    combinedDependencies: false,
    doNotFollow: { path: "node_modules" },
    exclude: { path: "^packages/[^/]+/(dist|src/gen)/" },
    moduleSystems: ["es6"],
    enhancedResolveOptions: {
      extensions: [".ts", ".js", ".mjs", ".json"],
      exportsFields: ["exports"],
      conditionNames: ["import", "node", "default", "types"],
    },
    webpackConfig: { fileName: "scripts/lib/resolve-sources.mjs" },
  },
};
