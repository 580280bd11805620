/** Declares the two internal modules of oidc-provider that identity-provider.ts imports. */

declare module 'oidc-provider/lib/provider.js' {
  import Provider from 'oidc-provider';

  export { Provider };
}

declare module 'oidc-provider/lib/adapters/memory_adapter.js' {
  import type { AdapterFactory } from 'oidc-provider';

  export function createMemoryAdapter(): AdapterFactory;
}
