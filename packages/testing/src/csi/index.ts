/** Texts and secrets at every place where the protocol has room for one. */
export { type LeakyServices, leakyServices } from "./leaky-services.ts";
export { csiMethods, methodsWithSecrets, placesOfText, requestWithSecrets } from "./planted-texts.ts";
