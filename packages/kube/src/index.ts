/** The controller core: client, informers, work queues, leader election, events, quantities, selectors. */
export * from "./basics.ts";
export {
  anonymous,
  type ClusterConfig,
  ConfigError,
  type ConfigHost,
  type Credential,
  type CredentialSource,
  fixedCredential,
} from "./config/cluster-config.ts";
export { inClusterConfig } from "./config/in-cluster-config.ts";
export { type KubeconfigSource, loadKubeconfig } from "./config/kubeconfig.ts";
export {
  type Controller,
  type ControllerOptions,
  startController,
} from "./controller/controller.ts";
export {
  type Actions,
  type Next,
  type ObserveAgain,
  observeAgain,
  type Step,
  type Steps,
  type WalkOptions,
  walkSteps,
} from "./controller/pass.ts";
export {
  forResource,
  owns,
  type ResourceOptions,
  type Source,
  type SourceQueue,
  type SyncedCache,
  source,
  type Wake,
  type WatchOptions,
  watches,
} from "./controller/sources.ts";
export {
  createEventRecorder,
  type EventRecorder,
  type EventRecorderOptions,
  type EventSubject,
  involvedObject,
} from "./events/event-recorder.ts";
export { type FlowControl, TokenBucket } from "./http/flow-control.ts";
export { createHttpClient, type HttpClientOptions, type HttpKubeClient } from "./http/http-client.ts";
export type { CacheProgress } from "./informer/cache-progress.ts";
export { compareResourceVersions } from "./informer/compare-resource-versions.ts";
export {
  type Informer,
  type InformerHandler,
  type InformerOptions,
  startInformer,
} from "./informer/informer.ts";
export type { IndexFunction } from "./informer/object-cache.ts";
export { type SharedInformers, sharedInformers } from "./informer/shared-informers.ts";
export { interceptWrites, type WriteInterceptor, type WriteRequest } from "./intercept-writes.ts";
export type { KubeEnv, OwnWrites, WrittenObject } from "./kube-env.ts";
export { fencedClient, type Term } from "./leader-election/fenced-client.ts";
export {
  type LeaderElection,
  type LeaderElectionOptions,
  startLeaderElection,
} from "./leader-election/leader-election.ts";
export { LeadershipLostError } from "./leader-election/leadership-lost-error.ts";
export {
  type InformerSource,
  StaleCacheError,
  trackWrites,
} from "./own-writes/track-writes.ts";
export { patchAsSeen } from "./patch-as-seen.ts";
export type { Priority } from "./queue/waiting-keys.ts";
export {
  type Pass,
  type QueueEnv,
  type Reconcile,
  type ReconcileResult,
  settled,
  startWorkQueue,
  TerminalError,
  type WorkQueue,
  type WorkQueueOptions,
} from "./queue/work-queue.ts";
export { ComponentScope } from "./scope/component-scope.ts";
export {
  type ControllerEnv,
  type ControllerScope,
  controllerScope,
} from "./scope/controller-scope.ts";
export { type LeasePolicy, type LedWork, startUnderLease } from "./scope/start-under-lease.ts";
export { untilServed } from "./until-served.ts";
export { type UpdateWithRetryOptions, updateWithRetry } from "./update-with-retry.ts";
