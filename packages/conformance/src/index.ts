/** The conformance suite: does a driver keep the CSI contract? */
export type { Check } from "./check.ts";
export { checks as conformanceChecks } from "./checks/index.ts";
export { junitOf } from "./junit.ts";
export type { ConformanceEnv, ConformanceEvent, ConformanceOptions } from "./options.ts";
export {
  type CallRecord,
  CheckFailure,
  type CheckGroup,
  type CheckResult,
  checkGroups,
  groupOf,
} from "./result.ts";
export { CleanupError, type ConformanceReport, isConformant, runConformance } from "./run.ts";
export { type DriverSecrets, driverSecretsOf, rpcsWithSecrets, SecretsError } from "./secrets.ts";
export { DriverUnreachableError } from "./target.ts";
export { type ConformanceTarget, conformanceSuite, type TestRunner } from "./test-runner.ts";
