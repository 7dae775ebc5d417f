export * from "./convert/index.ts";
