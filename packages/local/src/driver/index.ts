/** The reference CSI driver. */
export { createReferenceDriver } from "./reference-driver.ts";
