/** Manifests through the translation: the library behind `longshore translate`. */

export type { ClaimSizes } from "./claims-for-inline-volumes.ts";
export type { ConversionNote, NoteSink } from "./conversion-note.ts";
export { type ConversionTotals, convertManifests, type ManifestOptions } from "./convert-manifests.ts";
export type { ConversionOptions } from "./convert-object.ts";
export { type ManifestInput, ManifestInputError } from "./manifest-input.ts";
export type { ManifestWriter, OutputFormat } from "./manifest-output.ts";
