/** What a web app imports from the package; its bundler drops what it does not use. */
// biome-ignore-all lint/performance/noBarrelFile: a package has one address for all of it.

export type { DownloadOptions, DownloadProgress } from './download.ts';
export {
  createGatewayClient,
  type GatewayClient,
  type GatewayClientOptions,
  type SessionCheck,
} from './gateway-client.ts';
export { type Challenge, GatewayRequestError } from './gateway-request.ts';
export type { Generation, GenerationOptions, GenerationProgress } from './generation.ts';
export type { GenerationOrder, OwnFormPath } from './generation-order.ts';
export { NotAudioError } from './not-audio-error.ts';
export { RecoveryError } from './recovery-error.ts';
export { type IdentityProvider, SignInError, type SignInStorage } from './sign-in.ts';
export { type UnfinishedGeneration, UnfinishedGenerations } from './unfinished-generations.ts';
export type { UpstreamInit } from './upload.ts';
export type { SandboxData, UpstreamData } from './upstream-data.ts';
export type { UploadProgress } from './watched-request.ts';
