/**
 * The gallery: clusters of every plugin and of versions from 1.20 to 1.36, each as a dump in one of the forms in which dumps come, and
 * its report. `npx tsx scripts/assess-gallery.ts` writes the reports again.
 */
import { gzipSync } from "node:zlib";
import type { KubeObject } from "@longshore/kube";
import {
  assess,
  collectManifests,
  type Inventory,
  parseTemplatePath,
  renderReport,
} from "@longshore/migration";
import * as clouds from "./clusters-by-cloud.ts";
import * as troubles from "./clusters-in-trouble.ts";
import { galleryNow } from "./parts.ts";

/** How a dump is written. */
type Form = "list" | "indented list" | "JSON lines" | "YAML" | "gzip" | "lists of kinds" | "must-gather";

/** One cluster of the gallery. */
export interface Exhibit {
  readonly objects: readonly KubeObject[];
  readonly target: number;
  readonly form: Form;
  readonly templates?: readonly string[];
  readonly checkSecrets?: true;
}

/** The clusters, by the names of their reports. */
export const exhibits: Readonly<Record<string, Exhibit>> = {
  "aws-1.22-driver-on-two-of-three": { objects: clouds.awsBefore, target: 23, form: "indented list" },
  "gce-1.22-classes-with-zones": { objects: clouds.gcePd, target: 25, form: "YAML" },
  "azure-1.23-secrets-and-blobs": { objects: clouds.azure, target: 24, form: "list", checkSecrets: true },
  "vsphere-1.24-not-registered": { objects: clouds.vsphere, target: 25, form: "lists of kinds" },
  "ceph-1.30-gone-in-1.31": { objects: clouds.ceph, target: 31, form: "JSON lines" },
  "portworx-1.30-secret": { objects: clouds.portworx, target: 31, form: "gzip" },
  "aws-1.27-driver-lost": { objects: troubles.driverLost, target: 28, form: "indented list" },
  "cinder-1.20-half-crossed": { objects: troubles.halfCrossed, target: 21, form: "must-gather" },
  "aws-1.20-attachments": { objects: troubles.attachments, target: 23, form: "list" },
  "mixed-1.20-volumes-in-pods": { objects: troubles.ownVolumes, target: 24, form: "YAML" },
  "aws-1.28-custom-resources": {
    ...{ objects: troubles.customResources, target: 29, form: "list" },
    templates: [
      "batch.volcano.sh/v1alpha1/jobs:.spec.tasks[*].template",
      "argoproj.io/v1alpha1/rollouts:.spec.template",
    ],
  },
  "azure-1.36-after-upgrades": { objects: troubles.afterUpgrades, target: 36, form: "gzip" },
  "gluster-1.24-removed-plugins": { objects: troubles.removedPlugins, target: 26, form: "JSON lines" },
  "aws-1.22-limits": { objects: troubles.limits, target: 23, form: "indented list" },
  "aws-1.32-ready": { objects: troubles.sound, target: 33, form: "lists of kinds" },
};

const listOf = (items: readonly KubeObject[]) => ({ apiVersion: "v1", kind: "List", items });

/** The files of a dump, by name. */
function dumpOf({ objects, form }: Exhibit): Readonly<Record<string, string | Uint8Array>> {
  switch (form) {
    case "list":
      return { "dump.json": JSON.stringify(listOf(objects)) };
    case "indented list":
      return { "dump.json": `${JSON.stringify(listOf(objects), undefined, 4)}\n` };
    case "JSON lines":
      return { "dump.jsonl": objects.map((object) => `${JSON.stringify(object)}\n`).join("") };
    case "YAML":
      return {
        "dump.yaml": objects.map((object) => `---\n${JSON.stringify(object, undefined, 1)}\n`).join(""),
      };
    case "gzip":
      return { "dump.json.gz": gzipSync(JSON.stringify(listOf(objects))) };
    case "must-gather":
      // A file for each object of the cluster, and a list for each kind of a namespace.
      return Object.fromEntries([
        ...objects
          .filter(({ metadata }) => metadata?.namespace === undefined)
          .map((object) => [
            `cluster-scoped-resources/${object.kind}/${object.metadata?.name}.yaml`,
            `---\n${JSON.stringify(object, undefined, 1)}\n`,
          ]),
        ...[...new Set(objects.flatMap(({ metadata }) => metadata?.namespace ?? []))].map((namespace) => [
          `namespaces/${namespace}/core.yaml`,
          `---\n${JSON.stringify(listOf(objects.filter(({ metadata }) => metadata?.namespace === namespace)), undefined, 1)}\n`,
        ]),
      ]);
    case "lists of kinds": {
      const kinds = new Map<string, KubeObject[]>();
      for (const object of objects) {
        const type = `${object.apiVersion} ${object.kind}`;
        kinds.set(type, [...(kinds.get(type) ?? []), object]);
      }
      // As `kubectl cluster-info dump` writes them: items name no kind.
      return Object.fromEntries(
        [...kinds].map(([type, items]) => {
          const [apiVersion, kind] = type.split(" ");
          const bare = items.map(({ apiVersion: _version, kind: _kind, ...object }) => object);
          const list = { kind: `${kind}List`, apiVersion, metadata: { resourceVersion: "1" }, items: bare };
          return [`${kind?.toLowerCase()}s.json`, JSON.stringify(list, undefined, 4)];
        }),
      );
    }
  }
}

/** The report on an exhibit, made from its dump. */
export async function reportOn(exhibit: Exhibit): Promise<string> {
  return renderReport("wide", assess(await inventoryOf(exhibit), { targetMinor: exhibit.target }));
}

/** What is read from an exhibit's dump. */
export function inventoryOf(exhibit: Exhibit): Promise<Inventory> {
  const inputs = Object.entries(dumpOf(exhibit)).map(([name, content]) => ({
    name,
    bytes: (async function* () {
      yield typeof content === "string" ? Buffer.from(content) : content;
    })(),
  }));
  return collectManifests(inputs, {
    now: galleryNow,
    checkSecrets: exhibit.checkSecrets === true,
    templates: (exhibit.templates ?? []).map(parseTemplatePath),
  });
}
