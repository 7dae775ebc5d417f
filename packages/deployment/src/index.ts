/** The recommended deployment of a driver: rendering it, bringing it to a cluster, taking it away. */
export { renderChart } from "./chart/render-chart.ts";
export {
  type DeployField,
  DeployOptionError,
  type DistributionField,
  fieldText,
  type RolloutField,
} from "./deploy-fields.ts";
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
  type DistributionOptions,
  type DistributionPlan,
  type FeatureGateOperatorOptions,
  type MigrationControllerOptions,
  planDistribution,
} from "./distributions/distribution-plan.ts";
export { renderDistribution, renderDistributionAccess } from "./distributions/render-distribution.ts";
export { renderDistributionChart } from "./distributions/render-distribution-chart.ts";
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
export { featureGateOperatorLease } from "./rules/feature-gate-operator-rules.ts";
export { type AccessComponent, accessComponents, accessRules } from "./rules/index.ts";
export { migrationControllerLease } from "./rules/migration-controller-rules.ts";
export type { AccessNeeds, AccessRule, RuleScope, RuleVerb } from "./rules/rule.ts";
export { yamlText } from "./yaml-text.ts";
