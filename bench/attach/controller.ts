/** Our attach/detach controller as a process of its own; its access is in the environment; one line when it has started. */
import { featureGates } from "@longshore/runtime";
import { csiPlugin, startAttachDetachController, volumeGates } from "@longshore/volumes";
import { connect, env, type ServerAccess } from "./client.ts";

const kube = connect(JSON.parse(process.env.BENCH_ACCESS ?? "") as ServerAccess);
startAttachDetachController(
  { ...env, kube, plugins: [csiPlugin()] },
  { gates: featureGates(volumeGates, {}) },
);
console.log("started");
