/** The plugins whose volumes need no provider: what a node has or the API server holds. */
import type { VolumePlugin } from "../framework/volume-plugin.ts";
import { configMapPlugin } from "./config-map/config-map-plugin.ts";
import { downwardApiPlugin } from "./downward-api/downward-api-plugin.ts";
import { emptyDirPlugin } from "./empty-dir/empty-dir-plugin.ts";
import { hostPathPlugin } from "./host-path/host-path-plugin.ts";
import { localVolumePlugin } from "./local-volume/local-volume-plugin.ts";
import { projectedPlugin } from "./projected/projected-plugin.ts";
import { secretPlugin } from "./secret/secret-plugin.ts";

/** New plugins, to be given to the node agent. */
export function podVolumePlugins(): readonly VolumePlugin[] {
  return [
    emptyDirPlugin(),
    configMapPlugin(),
    secretPlugin(),
    downwardApiPlugin(),
    projectedPlugin(),
    hostPathPlugin(),
    localVolumePlugin(),
  ];
}
