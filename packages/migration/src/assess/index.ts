/** What depends on in-tree plugins, what breaks at an upgrade, and why: the library behind `longshore assess`. */
export {
  type Assessment,
  type AssessOptions,
  assess,
  type SuppressedFinding,
  type Verdict,
} from "./assess.ts";
export { type AssessmentDiff, type Changes, diffOf, EarlierReportError } from "./assessment-diff.ts";
export type { AssessmentFinding, RuleFinding, When } from "./assessment-finding.ts";
export { assessmentRole, type CollectOptions, collectCluster } from "./collect-cluster.ts";
export { type CollectManifestsOptions, collectManifests } from "./collect-manifests.ts";
export {
  type Code,
  type FindingCode,
  findingCode,
  findingCodes,
  findingLink,
  type Severity,
} from "./finding-codes.ts";
export type { Inventory } from "./inventory.ts";
export { minorVersionOf } from "./plugin-history.ts";
export { assessmentSchema } from "./report/assessment-schema.ts";
export { type ReportForm, renderReport, reportForms } from "./report/report.ts";
export { parseSuppressions, type Suppression, SuppressionError } from "./suppressions.ts";
export { parseTemplatePath, type TemplatePath, TemplatePathError } from "./template-paths.ts";
export { type WatchClusterOptions, watchCluster } from "./watch-cluster.ts";
