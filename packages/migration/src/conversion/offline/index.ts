/** Conversions for those who apply by themselves: from a dump to manifests and a script. */
export { type OfflineConversion, type OfflineFile, offlineConversion } from "./offline-conversion.ts";
