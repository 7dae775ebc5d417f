/** The `longshore` command, for those who embed it. */
export { main } from "./main.ts";
