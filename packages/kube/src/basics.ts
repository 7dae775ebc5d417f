/**
 * What API servers and their clients share: objects, errors, quantities, selectors. The root entry exports all of it;
 * this separate entry is for programs that start faster without clients, caches and queues.
 */
export { apiTime, microTime } from "./api-time.ts";
export type * from "./api-types.ts";
export {
  addFinalizerPatch,
  finalizersMergePatch,
  hasFinalizer,
  type JsonPatchStep,
  removeFinalizerPatch,
  withFinalizer,
  withoutFinalizer,
} from "./finalizers.ts";
export {
  type CallOptions,
  type DeleteOptions,
  isAlreadyExists,
  isConflict,
  isExpired,
  isInvalid,
  isNotFound,
  isTooManyRequests,
  KubeApiError,
  type KubeClient,
  KubeTransportError,
  type ListOptions,
  type ListPage,
  type Patch,
  type Status,
  type StatusCause,
  type WatchEvent,
  type WatchEvents,
  type WatchOptions,
  type WatchStream,
} from "./kube-client.ts";
export {
  isDeleting,
  isPodTerminal,
  type KubeObject,
  keyOf,
  type ObjectKey,
  type ObjectRef,
  refOf,
  refOfKey,
  type Stored,
} from "./kube-objects.ts";
export {
  formatBytes,
  parseQuantity,
  Quantity,
  QuantityError,
  type QuantityFormat,
  quantityOf,
} from "./quantity/quantity.ts";
export { apiVersionOf, type Resource, resources } from "./resources.ts";
export {
  escapeFieldValue,
  FieldMatcher,
  type FieldRequirement,
  parseFieldSelector,
} from "./selectors/field-selector.ts";
export {
  LabelMatcher,
  type LabelOperator,
  type LabelRequirement,
  type Labels,
  SelectorError,
} from "./selectors/label-requirement.ts";
export {
  labelSelectorMatcher,
  labelSelectorMatches,
  parseLabelSelector,
} from "./selectors/label-selector.ts";
export { nodeSelectorMatches } from "./selectors/node-selector.ts";
export {
  dns1035LabelErrors,
  dns1123LabelErrors,
  dns1123SubdomainErrors,
  labelValueErrors,
  qualifiedNameErrors,
} from "./selectors/validation.ts";
