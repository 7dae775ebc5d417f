/**
 * Our volume controllers in the place of Kubernetes' own, against the real API server: each with the
 * rights that Kubernetes grants to the controller it replaces.
 */
import type { HttpKubeClient } from "@longshore/kube";
import { type Component, featureGates, stopAll } from "@longshore/runtime";
import {
  csiPlugin,
  startAttachDetachController,
  startPersistentVolumeController,
  startProtectionControllers,
  volumeGates,
} from "@longshore/volumes";
import { inTreePluginsNamed } from "../../packages/local/src/components/in-tree-plugins.ts";
import { bindRole, connectAs, realEnv } from "./support/index.ts";
import { gates, volumeLife } from "./support/volume-life.ts";

const account = (name: string) => `system:serviceaccount:kube-system:${name}`;
const attachDetach = account("attachdetach-controller");
const binder = account("persistent-volume-binder");
const protection = account("volume-protection");

volumeLife("our controllers", {
  controlPlane: { users: [attachDetach, binder, protection].map((name) => ({ name })) },
  async startControllers(kubernetes, provider) {
    for (const controller of ["pv-protection-controller", "pvc-protection-controller"]) {
      await bindRole(kubernetes, protection, `system:controller:${controller}`);
    }
    const clients: HttpKubeClient[] = [];
    const envOf = async (user: string, component: string) => {
      const kube = await connectAs(kubernetes, user);
      clients.push(kube);
      const cloudFor = () => provider.cloud.forCaller({ path: "in-tree", component });
      // The cloud is AWS: a plugin of another provider has no account here.
      const inTree = inTreePluginsNamed(["aws-ebs"])(cloudFor);
      return { ...realEnv, kube, plugins: [...inTree, csiPlugin()] };
    };
    const options = { gates: featureGates(volumeGates, gates) };
    const controllers: Component[] = [
      startAttachDetachController(await envOf(attachDetach, "attach-detach-controller"), options),
      startPersistentVolumeController(await envOf(binder, "persistent-volume-controller"), options),
      startProtectionControllers(await envOf(protection, "protection-controllers")),
    ];
    return {
      async stop() {
        await stopAll(controllers);
        await Promise.all(clients.map((client) => client.close()));
      },
    };
  },
});
