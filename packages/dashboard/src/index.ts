/** A web page that shows a cluster and its crossing, live. */
export { type Dashboard, DashboardAddressError, type DashboardOptions, startDashboard } from "./dashboard.ts";
export { type DashboardFacts, type DashboardObjects, dashboardStateOf } from "./dashboard-state.ts";
export { PageNotBuiltError } from "./http-page-files.ts";
export type {
  AttachmentState,
  AttachPath,
  CrossingState,
  DashboardState,
  EventState,
  listMax,
  NodeState,
  NodeVolumeState,
  PluginState,
  PodState,
  StaleSource,
  VolumeState,
} from "./state.ts";
export type { ReadCrossing } from "./state-feed.ts";
