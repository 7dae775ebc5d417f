/** What checks need, as small predicates that say what is missing. */
import type { Need } from "./check.ts";

/** The driver declares the plugin capability, e.g. `VOLUME_ACCESSIBILITY_CONSTRAINTS`. */
export const pluginCan =
  (capability: string): Need =>
  ({ plugin }) =>
    plugin.has(capability) ? undefined : `the driver does not declare ${capability} (GetPluginCapabilities)`;

/** The driver's controller declares the capability, e.g. `CREATE_DELETE_VOLUME`. */
export const controllerCan =
  (capability: string): Need =>
  ({ controller, plugin }) => {
    if (controller.has(capability)) return undefined;
    return plugin.has("CONTROLLER_SERVICE")
      ? `the controller does not declare ${capability}`
      : "the driver has no controller service (GetPluginCapabilities)";
  };

/** The controller does not declare the capability: the rule is for those without. */
export const controllerCannot =
  (capability: string): Need =>
  ({ controller }) =>
    controller.has(capability) ? `for drivers without ${capability} only` : undefined;

/** There is a controller service. */
export const hasController: Need = ({ plugin }) =>
  plugin.has("CONTROLLER_SERVICE")
    ? undefined
    : "the driver has no controller service (GetPluginCapabilities)";

/** The group controller declares the capability. */
export const groupsCan =
  (capability: string): Need =>
  ({ groupController, plugin }) => {
    if (groupController.has(capability)) return undefined;
    return plugin.has("GROUP_CONTROLLER_SERVICE")
      ? `the group controller does not declare ${capability}`
      : "the driver has no group controller service (GetPluginCapabilities)";
  };

/** There is a node service. */
export const hasNode: Need = ({ hasNode }) =>
  hasNode ? undefined : "no node service answers at the endpoint (NodeGetCapabilities)";

/** The node service declares the capability, e.g. `STAGE_UNSTAGE_VOLUME`. */
export const nodeCan =
  (capability: string): Need =>
  (target) =>
    hasNode(target) ??
    (target.node.has(capability) ? undefined : `the node service does not declare ${capability}`);

/** Volumes can be made and, where they must be, published to this node. */
export const canUseVolumes: Need = (target) => {
  const missing = hasNode(target) ?? controllerCan("CREATE_DELETE_VOLUME")(target);
  if (missing !== undefined) return missing;
  return target.controller.has("PUBLISH_UNPUBLISH_VOLUME") ? nodeIdKnown(target) : undefined;
};

/** The node's id is known, so that volumes can be published to it. */
export const nodeIdKnown: Need = ({ nodeInfo }) =>
  nodeInfo !== undefined && nodeInfo.nodeId !== ""
    ? undefined
    : "the node's id is not known (NodeGetInfo): volumes cannot be published to it";

/** The run may end and restart the driver. */
export const canRestart: Need = ({ options }) =>
  options.restartDriver === undefined ? "the driver cannot be restarted: give `restartDriver`" : undefined;

/** Volumes are published as mounted directories. */
export const mounted: Need = ({ options }) =>
  options.accessType === "mount" ? undefined : "volumes are checked as block devices (`accessType: block`)";

/** The node is said to be on a topology. */
export const topologyKnown: Need = ({ nodeInfo }) =>
  Object.keys(nodeInfo?.accessibleTopology?.segments ?? {}).length > 0
    ? undefined
    : "the node's topology is not known (NodeGetInfo)";
