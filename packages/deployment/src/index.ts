/** The recommended deployment of a driver: rendering it, bringing it to a cluster, taking it away. */
export { renderChart } from "./chart/render-chart.ts";
export { type DeployField, DeployOptionError, fieldText, type RolloutField } from "./deploy-fields.ts";
export {
  type ClassOptions,
  type ControllerKind,
  controllerKinds,
  type DeployOptions,
  type ResourceAmounts,
  type TolerationOptions,
} from "./deploy-options.ts";
export { checkDriverName, type DeploymentPlan, planDeployment } from "./deployment-plan.ts";
export {
  accountOf,
  type Grant,
  type Grantee,
  granteesOf,
  renderAccess,
  rulesOf,
} from "./objects/access-objects.ts";
export type { Rendered } from "./objects/rendered.ts";
export { allObjects, type RenderedDeployment, renderDeployment } from "./render-deployment.ts";
export {
  leftText,
  type RemoveOptions,
  type RemoveOutcome,
  removeDeployment,
} from "./rollout/remove-deployment.ts";
export { RolloutError, type RolloutOptions } from "./rollout/rollout.ts";
export { type UpgradeOptions, type UpgradeOutcome, upgradeDeployment } from "./rollout/upgrade-deployment.ts";
export { type AccessComponent, accessComponents, accessRules } from "./rules/index.ts";
export type { AccessNeeds, AccessRule, RuleScope, RuleVerb } from "./rules/rule.ts";
export { yamlText } from "./yaml-text.ts";
