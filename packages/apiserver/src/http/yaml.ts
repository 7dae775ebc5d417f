/** The reader and writer of YAML, loaded with the first text in it: most clients speak JSON, and the server is there the sooner. */
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

/** Loads js-yaml at the first call. */
export const yaml = (): typeof import("js-yaml") => require("js-yaml");
