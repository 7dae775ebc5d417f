/**
 * The part of the script that replaces classes and StatefulSets by commands of kubectl. Pure. Source of the order:
 * docs/decisions/0032-replaced-classes-and-stateful-sets.md.
 */
import type { KubeObject, StatefulSet, StorageClass } from "@longshore/kube";
import { shellWord } from "@longshore/runtime";
import { betaStorageClassAnnotation, betaStorageProvisionerAnnotation } from "@longshore/storage";
import { formatYaml } from "../../convert/yaml-text.ts";
import { authoredMetadata } from "../objects/differences.ts";
import { isDefaultClass } from "../replacements/replaced-form.ts";
import type { PlannedReplacement } from "../replacements/replacement-types.ts";

/** A class or a StatefulSet with the directory, beside the script, that has its files. */
export interface ScriptedReplacement {
  readonly planned: PlannedReplacement;
  readonly directory: string;
}

/** The calls, with the functions before them; empty where there is nothing to replace. */
export function replacementScript(objects: readonly ScriptedReplacement[]): string {
  if (objects.length === 0) return "";
  return `\n${templatesOf}\n${functions.slice(interpreter.length)}\n${objects.map(callOf).join("\n")}\n`;
}

/** The files of one: `after.yaml`, `before.yaml`, and by which UID the old one is deleted. */
export function replacementFiles({ planned, directory }: ScriptedReplacement) {
  const { kind, uid, before, after } = planned;
  const options = {
    apiVersion: "v1",
    kind: "DeleteOptions",
    preconditions: { uid },
    ...(kind === "StatefulSet" ? { propagationPolicy: "Orphan" } : {}),
  };
  const file = (name: string, text: string) => ({ path: `${directory}/${name}`, text, executable: false });
  return [
    file("after.yaml", formatYaml(authored(after))),
    file("before.yaml", formatYaml(authored(before))),
    file("delete.json", `${JSON.stringify(options)}\n`),
  ];
}

function authored(object: KubeObject): object {
  const { status: _status, ...rest } = object as KubeObject & { status?: unknown };
  return { ...rest, metadata: authoredMetadata(object.metadata) };
}

function callOf({ planned, directory }: ScriptedReplacement): string {
  const { kind, namespace = "", name, uid, after, before, keepsOld } = planned;
  if (kind === "StatefulSet") {
    const { spec, status } = before as StatefulSet;
    const words = [directory, namespace, name, uid, templatesText(after), String(spec?.replicas ?? 1)];
    return `replace_set ${[...words, status?.updateRevision ?? ""].map(shellWord).join(" ")}`;
  }
  const { provisioner } = after as StorageClass;
  if (!keepsOld) return `replace_class ${[directory, name, uid, provisioner].map(shellWord).join(" ")}`;
  const words = [
    directory,
    name,
    after.metadata?.name ?? "",
    provisioner,
    isDefaultClass(before) ? "yes" : "no",
  ];
  return `add_class ${words.map(shellWord).join(" ")}`;
}

const templateFields = [
  ".metadata.name",
  ".spec.storageClassName",
  ".spec.volumeName",
  `.metadata.annotations.${betaStorageClassAnnotation.replaceAll(".", "\\.")}`,
  `.metadata.annotations.${betaStorageProvisionerAnnotation.replaceAll(".", "\\.")}`,
];

/** What of the templates is changed, as the JSONPath of the script prints it. */
function templatesText(object: KubeObject): string {
  return ((object as StatefulSet).spec?.volumeClaimTemplates ?? [])
    .map(({ metadata, spec }) =>
      [
        metadata?.name,
        spec?.storageClassName,
        spec?.volumeName,
        metadata?.annotations?.[betaStorageClassAnnotation],
        metadata?.annotations?.[betaStorageProvisionerAnnotation],
      ]
        .map((field) => `${field ?? ""},`)
        .join(""),
    )
    .join("");
}

const templatesOf = `templates_of='{range .spec.volumeClaimTemplates[*]}${templateFields.map((field) => `{${field}},`).join("")}{end}'`;
const interpreter = "#!/bin/sh\n";
/** A script by itself, so that tools that look at scripts know it for one. */
const functions = `#!/bin/sh
# Classes and StatefulSets: their immutable fields change, so that each is deleted and made again.

is_object_gone() {
  get "$object_kind" "$object_name" "$object_namespace" '{.metadata.uid}'
  [ "$value" != "$object_uid" ]
}

# remove_object DIRECTORY RAW_PATH: the file holds the UID as a precondition, and for a StatefulSet that its pods stay.
remove_object() {
  rm -f "$backup/$(basename "$1").yaml"
  save "$object_kind" "$object_name" "$object_namespace" "$(basename "$1").yaml"
  say "$object_kind $object_name: is deleted, and made again"
  "$kubectl" delete --raw "$2" -f "$here/$1/delete.json" >/dev/null
  wait_for "$object_kind $object_name is still there" is_object_gone
}

# replace_class DIRECTORY NAME UID PROVISIONER
replace_class() {
  object_kind=storageclass object_name=$2 object_namespace='' object_uid=$3
  get storageclass "$2" '' '{.provisioner}'
  [ "$value" != "$4" ] || return 0
  get storageclass "$2" '' '{.metadata.uid}'
  if [ "$value" = "$3" ]; then
    remove_object "$1" "/apis/storage.k8s.io/v1/storageclasses/$2"
  elif [ -n "$value" ] || [ ! -e "$backup/$(basename "$1").yaml" ]; then
    fail "StorageClass $2 is another one than in the dump, or gone; write the script again"
  fi
  "$kubectl" create -f "$here/$1/after.yaml"
  # Check.
  get storageclass "$2" '' '{.provisioner}'
  [ "$value" = "$4" ] || fail "StorageClass $2 is of $value"
}

# add_class DIRECTORY OLD NEW PROVISIONER DEFAULT
add_class() {
  get storageclass "$3" '' '{.provisioner}'
  if [ -z "$value" ]; then
    say "StorageClass $3: is made beside $2"
    "$kubectl" create -f "$here/$1/after.yaml"
  elif [ "$value" != "$4" ]; then
    fail "StorageClass $3 is of $value; remove it"
  fi
  [ "$5" = yes ] || return 0
  # The new class is the default one already: there is no moment without one.
  "$kubectl" annotate storageclass "$2" --overwrite storageclass.kubernetes.io/is-default-class=false storageclass.beta.kubernetes.io/is-default-class-
}

are_pods_adopted() {
  value=$("$kubectl" get pods -n "$object_namespace" -o 'jsonpath={range .items[*]}{.metadata.name}{" "}{.metadata.deletionTimestamp}{" "}{.metadata.ownerReferences[?(@.controller==true)].uid}{"\\n"}{end}') || fail "pods of $object_namespace cannot be read"
  orphans=$(printf '%s\\n' "$value" | awk -v set="$object_name-" 'index($1, set) == 1 && substr($1, length(set) + 1) ~ /^[0-9]+$/ && NF == 1 { print "    Pod " $1 }')
  [ -z "$orphans" ] && return
  printf '%s\\n' "$orphans"
  return 1
}

# check_set NAMESPACE NAME REPLICAS REVISION: what is made again is what is there.
check_set() {
  get statefulset "$2" "$1" '{.spec.persistentVolumeClaimRetentionPolicy.whenDeleted}'
  [ "$value" != Delete ] || fail "StatefulSet $1/$2 owns its claims: set persistentVolumeClaimRetentionPolicy.whenDeleted to Retain"
  value=$("$kubectl" get pvc -n "$1" -o 'jsonpath={range .items[*]}{.metadata.ownerReferences[*].uid}{"\\n"}{end}') || fail "claims of $1 cannot be read"
  case "$value" in *"$object_uid"*) fail "a claim has StatefulSet $1/$2 as its owner: wait until its controller has taken that off" ;; esac
  get statefulset "$2" "$1" '{.spec.replicas} {.metadata.generation} {.status.updateRevision}'
  [ "\${value%% *}" = "$3" ] || fail "StatefulSet $1/$2 has \${value%% *} replicas, and $3 in the dump; write the script again"
  [ "\${value##* }" = "$4" ] || fail "StatefulSet $1/$2 has another template of pods than in the dump; write the script again"
  generation=\${value#* }
  generation=\${generation%% *}
  get statefulset "$2" "$1" '{.status.observedGeneration} {.spec.updateStrategy.type} {.status.currentRevision}'
  [ "\${value%% *}" = "$generation" ] || fail "the controller has not seen StatefulSet $1/$2 yet; run the script again"
  case "$value" in
    *" OnDelete "*) ;;
    *) [ "\${value##* }" = "$4" ] || fail "StatefulSet $1/$2 rolls out; wait until that has ended" ;;
  esac
}

# replace_set DIRECTORY NAMESPACE NAME UID TEMPLATES REPLICAS REVISION
replace_set() {
  object_kind=statefulset object_name=$3 object_namespace=$2 object_uid=$4
  get statefulset "$3" "$2" '{.metadata.uid} {.metadata.deletionTimestamp}'
  set_now=\${value%% *}
  set_state=$value
  get statefulset "$3" "$2" "$templates_of"
  if [ -z "$set_now" ] || [ "$value" != "$5" ]; then
    if [ "$set_now" = "$4" ] && [ "$set_state" = "$4 " ]; then
      check_set "$2" "$3" "$6" "$7"
      remove_object "$1" "/apis/apps/v1/namespaces/$2/statefulsets/$3"
    elif [ ! -e "$backup/$(basename "$1").yaml" ]; then
      fail "StatefulSet $2/$3 is another one than in the dump, is being deleted, or is gone; write the script again"
    elif [ "$set_now" = "$4" ]; then
      wait_for "statefulset $3 is still there" is_object_gone
    elif [ -n "$set_now" ]; then
      fail "StatefulSet $2/$3 was made again by another in its old form: change it there"
    fi
    "$kubectl" create -f "$here/$1/after.yaml"
  fi
  # Check: the templates, and that the pods that went on have it as their controller.
  get statefulset "$3" "$2" "$templates_of"
  [ "$value" = "$5" ] || fail "StatefulSet $2/$3 has the templates $value"
  wait_for "pods of statefulset $3 are not adopted" are_pods_adopted
}
`;
