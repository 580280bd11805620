/** Types of the two inner modules of oidc-provider that the sandbox imports; identity-provider.ts says why. */

declare module 'oidc-provider/lib/provider.js' {
  import Provider from 'oidc-provider';

  export { Provider };
}

declare module 'oidc-provider/lib/adapters/memory_adapter.js' {
  import type { AdapterFactory } from 'oidc-provider';

  export function createMemoryAdapter(): AdapterFactory;
}
