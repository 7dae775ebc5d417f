/** Manifests through the translation: the library behind `longshore translate`. */

export type { ConversionNote, NoteSink } from "./conversion-note.ts";
export { type ConversionTotals, convertManifests, type ManifestOptions } from "./convert-manifests.ts";
export type { ConversionOptions } from "./convert-object.ts";
export type { ClaimSizes } from "./inline-claims.ts";
export { type ManifestInput, ManifestInputError } from "./input-bytes.ts";
export type { ManifestWriter, OutputFormat } from "./manifest-output.ts";
