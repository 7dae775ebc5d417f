/** The conformance suite: does a driver keep the CSI contract? */
export type { Check } from "./check.ts";
export {
  type CallRecord,
  CheckFailure,
  type CheckGroup,
  type CheckResult,
  checkGroups,
  groupOf,
} from "./check-result.ts";
export { checks as conformanceChecks } from "./checks/index.ts";
export type { ConformanceEnv, ConformanceEvent, ConformanceOptions } from "./conformance-options.ts";
export { type DriverSecrets, driverSecretsOf, rpcsWithSecrets, SecretsError } from "./driver-secrets.ts";
export { DriverUnreachableError } from "./driver-target.ts";
export { junitOf } from "./junit.ts";
export {
  CleanupError,
  ConformanceInterruptedError,
  type ConformanceReport,
  goneSince,
  isConformant,
  runConformance,
} from "./run-conformance.ts";
export { type ConformanceTarget, conformanceSuite, type TestRunner } from "./test-runner.ts";
