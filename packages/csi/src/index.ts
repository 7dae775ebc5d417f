/** Talking CSI. */
export * from "./connection.ts";
export * from "./errors.ts";
