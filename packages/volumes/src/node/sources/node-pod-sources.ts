/** What the volumes of a node's pods are made from: objects that are followed, and tokens that are renewed. Source: docs/behaviour/pod-volumes.md 5. */
import { type ConfigMap, type KubeClient, resources, type Secret, type Stored } from "@longshore/kube";
import type { Component, RuntimeEnv, Timer } from "@longshore/runtime";
import type {
  PodSources,
  ServiceAccountToken,
  SourceReader,
  TokenDemand,
} from "../../framework/pod-sources.ts";
import type { ServiceAccountTokens } from "../tokens/service-account-tokens.ts";
import { ReferencedObjects } from "./referenced-objects.ts";

/** Called when a volume is to be set up again. */
export type SourceChanged = (uniqueName: string, podUID: string) => void;

/** What the sources work with. */
export interface PodSourcesEnv extends RuntimeEnv {
  readonly kube: KubeClient;
  readonly tokens: ServiceAccountTokens;
}

/** What one volume has read. */
interface Reading {
  readonly podUID: string;
  /** Of the tokens in it, by what they are for. */
  readonly renewals: Map<string, Timer>;
}

/** The sources of one node. */
export class NodePodSources implements PodSources, Component {
  readonly #env: PodSourcesEnv;
  readonly #objects: ReferencedObjects;
  readonly #tokens: ServiceAccountTokens;
  readonly #onChange: SourceChanged;
  readonly #readings = new Map<string, Reading>();
  /** How many volumes of each pod have read something. */
  readonly #byPod = new Map<string, number>();
  #isStopped = false;

  constructor(env: PodSourcesEnv, onChange: SourceChanged) {
    this.#env = env;
    this.#onChange = onChange;
    this.#objects = new ReferencedObjects(env, (uniqueName) => this.#changed(uniqueName));
    this.#tokens = env.tokens;
  }

  configMap(reader: SourceReader, name: string, signal: AbortSignal): Promise<Stored<ConfigMap> | undefined> {
    return this.#objects.read(resources.configMaps, this.#refOf(reader, name), reader.uniqueName, signal);
  }

  secret(reader: SourceReader, name: string, signal: AbortSignal): Promise<Stored<Secret> | undefined> {
    return this.#objects.read(resources.secrets, this.#refOf(reader, name), reader.uniqueName, signal);
  }

  async serviceAccountToken(
    reader: SourceReader,
    demand: TokenDemand,
    signal: AbortSignal,
  ): Promise<ServiceAccountToken> {
    const { renewals } = this.#note(reader);
    const { renewInMs, ...token } = await this.#tokens.serviceAccountToken(reader.pod, demand, signal);
    const purpose = JSON.stringify([demand.audience, demand.expirationSeconds]);
    renewals.get(purpose)?.cancel();
    if (this.#isStopped || this.#readings.get(reader.uniqueName)?.renewals !== renewals) return token;
    renewals.set(
      purpose,
      this.#env.clock.timer(renewInMs, () => this.#changed(reader.uniqueName)),
    );
    return token;
  }

  /** The volume is neither wanted nor here any more. */
  release(uniqueName: string): void {
    const reading = this.#readings.get(uniqueName);
    if (reading === undefined) return;
    this.#readings.delete(uniqueName);
    this.#objects.release(uniqueName);
    for (const timer of reading.renewals.values()) timer.cancel();
    const others = (this.#byPod.get(reading.podUID) ?? 1) - 1;
    if (others > 0) this.#byPod.set(reading.podUID, others);
    else {
      this.#byPod.delete(reading.podUID);
      this.#tokens.forgetPod(reading.podUID);
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const { renewals } of this.#readings.values()) {
      for (const timer of renewals.values()) timer.cancel();
    }
    await this.#objects.stop();
  }

  #refOf(reader: SourceReader, name: string) {
    this.#note(reader);
    return { namespace: reader.pod.metadata.namespace ?? "", name };
  }

  #note({ pod, uniqueName }: SourceReader): Reading {
    const known = this.#readings.get(uniqueName);
    if (known !== undefined) return known;
    const { uid } = pod.metadata;
    const reading: Reading = { podUID: uid, renewals: new Map() };
    this.#readings.set(uniqueName, reading);
    this.#byPod.set(uid, (this.#byPod.get(uid) ?? 0) + 1);
    return reading;
  }

  #changed(uniqueName: string): void {
    const reading = this.#readings.get(uniqueName);
    if (reading !== undefined) this.#onChange(uniqueName, reading.podUID);
  }
}
