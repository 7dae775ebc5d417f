export { type ResizerOptions, serveResizes, startResizer } from "./resizer.ts";
