export { type CapacityOptions, type CapacityTracking, serveCapacity } from "./serve-capacity.ts";
