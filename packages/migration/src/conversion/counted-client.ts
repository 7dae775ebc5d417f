/** A client that counts its requests. */
import type { KubeClient } from "@longshore/kube";

/** @param onRequest is called before each request; the requests that a client sends again by itself are one */
export function countedClient(kube: KubeClient, onRequest: () => void): KubeClient {
  const counted = <A extends readonly unknown[], R>(call: (...args: A) => R): ((...args: A) => R) => {
    return (...args) => {
      onRequest();
      return call(...args);
    };
  };
  // Each verb is generic in the kind of object, which passes through untouched.
  return {
    get: counted(kube.get.bind(kube)) as KubeClient["get"],
    list: counted(kube.list.bind(kube)) as KubeClient["list"],
    watch: counted(kube.watch.bind(kube)) as KubeClient["watch"],
    create: counted(kube.create.bind(kube)) as KubeClient["create"],
    update: counted(kube.update.bind(kube)) as KubeClient["update"],
    updateStatus: counted(kube.updateStatus.bind(kube)) as KubeClient["updateStatus"],
    patch: counted(kube.patch.bind(kube)) as KubeClient["patch"],
    delete: counted(kube.delete.bind(kube)) as KubeClient["delete"],
    createSubresource: counted(kube.createSubresource.bind(kube)) as KubeClient["createSubresource"],
    servedVersion: kube.servedVersion.bind(kube),
  };
}
