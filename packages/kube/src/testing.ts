/** What tests of controllers need: `@longshore/kube/testing`. */
export { pureDecision } from "./controller/pure-decision.ts";
