/** The volume subsystem. */
export * from "./framework/plugin.ts";
export * from "./framework/ports.ts";
export * from "./framework/spec.ts";
export * from "./framework/volume-host.ts";
