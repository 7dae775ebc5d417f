/** From objects to the objects that take their place, and to texts about them. Pure functions. */
export { convertedClaim } from "./converted-claim.ts";
export { convertedClass } from "./converted-class.ts";
export { convertedTemplates } from "./converted-templates.ts";
export { convertedVolume } from "./converted-volume.ts";
export { HandleRuleError, handleRulesSchema, parseHandleRules } from "./handle-rules.ts";
export { type InlineConversion, inlineVolumes } from "./inline-volumes.ts";
export { diffOfObjects } from "./object-diff.ts";
export { ownersOf } from "./object-owners.ts";
