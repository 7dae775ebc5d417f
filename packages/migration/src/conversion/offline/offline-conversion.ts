/**
 * A conversion as files: manifests, and a script of kubectl commands for those who apply by themselves. Pure.
 */
import type { KubeObject } from "@longshore/kube";
import { isDns1123Subdomain } from "@longshore/storage";
import { formatYaml } from "../../convert/yaml-text.ts";
import { uniqueNamesOf, volumeFormOf } from "../../crossing/volume-form.ts";
import type { ConversionPlan, PlannedVolume, Refusal } from "../conversion-types.ts";
import { authoredMetadata } from "../objects/differences.ts";
import { conversionScript } from "./conversion-script.ts";

/** One file of a conversion. */
export interface OfflineFile {
  /** Relative, with `/`. */
  readonly path: string;
  readonly text: string;
  readonly executable: boolean;
}

/** What is written, and what is not. */
export interface OfflineConversion {
  readonly files: readonly OfflineFile[];
  readonly volumes: readonly PlannedVolume[];
  readonly refused: ConversionPlan["refused"];
}

/**
 * The files: `convert.sh`, and for each volume a directory with the new objects (`volume.yaml`, `claim.yaml`), the old ones
 * (`before.yaml`) and what the script reads. Names that are no names of the API are refused, since they become paths.
 */
export function offlineConversion({
  volumes,
  refused,
}: Pick<ConversionPlan, "volumes" | "refused">): OfflineConversion {
  const faults = volumes.map(nameFault);
  const accepted = volumes.filter((_volume, at) => faults[at] === undefined);
  const width = String(accepted.length).length;
  const scripted = accepted.map((planned, at) => ({
    planned,
    directory: `${String(at + 1).padStart(width, "0")}-${planned.volume}`,
  }));
  const files = scripted.flatMap(({ planned, directory }) => filesOf(planned, directory));
  const script = { path: "convert.sh", text: conversionScript(scripted), executable: true };
  return {
    files: scripted.length === 0 ? [] : [script, ...files],
    volumes: accepted,
    refused: [
      ...refused,
      ...volumes.flatMap(({ volume }, at) => {
        const fault = faults[at];
        return fault === undefined ? [] : [{ volume, refusals: [fault] }];
      }),
    ],
  };
}

function nameFault({ volume, claim, toAfter, workloads }: PlannedVolume): Refusal | undefined {
  const names = [
    volume,
    toAfter.metadata?.name ?? "",
    claim.namespace,
    claim.name,
    ...workloads.flatMap(({ namespace, name }) => [namespace, name]),
  ];
  const wrong = names.find((name) => !isDns1123Subdomain(name));
  if (wrong === undefined) return undefined;
  return {
    code: "changed-by-others",
    object: `PersistentVolume ${volume}`,
    field: "metadata.name",
    reason: `${JSON.stringify(wrong)} is no name that the API server accepts`,
    remedy: "write the dump again with kubectl, and change nothing in it",
  };
}

function filesOf(planned: PlannedVolume, directory: string): readonly OfflineFile[] {
  const { volumeUid, claim, fromBefore, claimBefore, toAfter, claimAfter } = planned;
  const disks = new Set([fromBefore, toAfter].flatMap((pv) => uniqueNamesOf(volumeFormOf(pv))));
  const file = (name: string, text: string) => ({ path: `${directory}/${name}`, text, executable: false });
  return [
    file("volume.yaml", formatYaml(toAfter)),
    file("claim.yaml", formatYaml(claimAfter)),
    file(
      "before.yaml",
      [fromBefore, claimBefore].map((object) => formatYaml(authored(object))).join("---\n"),
    ),
    file("delete-claim.json", deleteOptions(claim.uid)),
    file("delete-volume.json", deleteOptions(volumeUid)),
    file("disk-names", [...disks].map((name) => `${name.replaceAll("\n", " ")}\n`).join("")),
  ];
}

function authored(object: KubeObject): object {
  const { status: _status, ...rest } = object as KubeObject & { status?: unknown };
  return { ...rest, metadata: authoredMetadata(object.metadata) };
}

/** An object of the same name that somebody else has made is not deleted. */
function deleteOptions(uid: string): string {
  return `${JSON.stringify({ apiVersion: "v1", kind: "DeleteOptions", preconditions: { uid } })}\n`;
}
