export { type CapacityOptions, serveCapacity } from "./serve-capacity.ts";
