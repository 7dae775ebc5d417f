/** Manifests through the translation: the library behind `longshore translate`. */

export { type ConversionTotals, convertManifests, type ManifestOptions } from "./convert-manifests.ts";
export type { ConversionNote, ConversionOptions, NoteSink } from "./convert-object.ts";
export type { ManifestWriter, OutputFormat } from "./manifest-output.ts";
