/** Runs Jobs: starts their pods until as many have succeeded as `decide-job-step.ts` wants. */
import {
  forResource,
  isNotFound,
  refOf,
  resources,
  settled,
  startController,
  trackWrites,
} from "@longshore/kube";
import type { Component } from "@longshore/runtime";
import {
  controlledBy,
  orphansIn,
  ownerIndexes,
  ownershipIndexes,
  ownsOrMayAdopt,
} from "../pod-sets/controlled-objects.ts";
import { podSetActions } from "../pod-sets/pod-set-steps.ts";
import type { WorkloadsEnv } from "../workloads-env.ts";
import { decideJobStep, type JobStep, type ObservedJob, ownerOfJob } from "./decide-job-step.ts";

/** Starts the controller on the shared caches, five Jobs at a time; it works in the background until it is stopped. */
export function startJobController(given: WorkloadsEnv): Component {
  const env = trackWrites(given, given.informers);
  const { clock, kube } = env;
  const jobs = env.informers.of(resources.jobs, { indexes: ownerIndexes });
  const pods = env.informers.of(resources.pods, { indexes: ownershipIndexes });
  return startController<ObservedJob, JobStep>(env, {
    name: "job",
    workers: 5,
    // Each step goes one further in a plan, which has an end.
    stepsMax: Number.POSITIVE_INFINITY,
    sources: [forResource(jobs, { deleted: "forget" }), ownsOrMayAdopt(pods, jobs, ownerOfJob)],
    observe(key) {
      const job = jobs.get(key);
      if (job === undefined) return undefined;
      return {
        job,
        pods: controlledBy(pods, job.metadata.uid),
        orphans: orphansIn(pods, job.metadata.namespace ?? "default"),
        now: clock.now(),
        done: 0,
      };
    },
    decide: decideJobStep,
    actions: {
      ...podSetActions<ObservedJob>(kube),
      async reportStatus({ status, nextMs }, { job }, { signal }) {
        // What is not there any more is taken away.
        const gone = Object.keys(job.status ?? {}).filter((member) => !(member in status));
        const body = { status: { ...Object.fromEntries(gone.map((member) => [member, null])), ...status } };
        await kube
          .patch(resources.jobs, refOf(job), { type: "merge", body }, { subresource: "status", signal })
          .catch((error) => {
            if (!isNotFound(error)) throw error;
          });
        return nextMs === undefined ? {} : { requeueAfterMs: nextMs };
      },
      async deleteJob(_step, { job }, { signal }) {
        const { uid } = job.metadata;
        await kube.delete(resources.jobs, refOf(job), { uid, propagationPolicy: "Background", signal });
        return settled;
      },
      settle: ({ nextMs }) => (nextMs === undefined ? {} : { requeueAfterMs: nextMs }),
    },
  });
}
