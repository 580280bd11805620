/** The BUN_OPTIONS of a gateway process that does not take a slow Redis for one that is down. */

export const PATIENT_WITH_REDIS = `--preload=${import.meta.dir}/patient-redis.ts`;
