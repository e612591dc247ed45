/* host_constants_test.cu - flags and enumerators have NVIDIA's numbers: the table holds for the header it is compiled
 * with, ours or, compiled by nvcc, NVIDIA's. No GPU is needed. */
#include "collective.h"

// clang-format off
#define CONSTANTS(X) \
  X(cudaAccessPropertyNormal, 0) X(cudaAccessPropertyPersisting, 2) X(cudaAccessPropertyStreaming, 1) \
  X(cudaArrayCubemap, 4) X(cudaArrayDefault, 0) X(cudaArrayLayered, 1) X(cudaArraySurfaceLoadStore, 2) \
  X(cudaArrayTextureGather, 8) X(cudaChannelFormatKindFloat, 2) X(cudaChannelFormatKindNone, 3) \
  X(cudaChannelFormatKindSigned, 0) X(cudaChannelFormatKindUnsigned, 1) X(cudaComputeModeDefault, 0) \
  X(cudaComputeModeExclusive, 1) X(cudaComputeModeExclusiveProcess, 3) X(cudaComputeModeProhibited, 2) \
  X(cudaCpuDeviceId, -1) X(cudaDevAttrAsyncEngineCount, 40) X(cudaDevAttrCanFlushRemoteWrites, 98) \
  X(cudaDevAttrCanMapHostMemory, 19) X(cudaDevAttrCanUseHostPointerForRegisteredMem, 91) \
  X(cudaDevAttrClockRate, 13) X(cudaDevAttrClusterLaunch, 120) X(cudaDevAttrComputeCapabilityMajor, 75) \
  X(cudaDevAttrComputeCapabilityMinor, 76) X(cudaDevAttrComputeMode, 20) \
  X(cudaDevAttrComputePreemptionSupported, 90) X(cudaDevAttrConcurrentKernels, 31) \
  X(cudaDevAttrConcurrentManagedAccess, 89) X(cudaDevAttrCooperativeLaunch, 95) \
  X(cudaDevAttrDirectManagedMemAccessFromHost, 101) X(cudaDevAttrEccEnabled, 32) \
  X(cudaDevAttrGPUDirectRDMASupported, 116) X(cudaDevAttrGlobalL1CacheSupported, 79) \
  X(cudaDevAttrGlobalMemoryBusWidth, 37) X(cudaDevAttrGpuOverlap, 15) \
  X(cudaDevAttrHostNativeAtomicSupported, 86) X(cudaDevAttrHostRegisterReadOnlySupported, 113) \
  X(cudaDevAttrHostRegisterSupported, 99) X(cudaDevAttrIntegrated, 18) X(cudaDevAttrIsMultiGpuBoard, 84) \
  X(cudaDevAttrKernelExecTimeout, 17) X(cudaDevAttrL2CacheSize, 38) X(cudaDevAttrLocalL1CacheSupported, 80) \
  X(cudaDevAttrManagedMemory, 83) X(cudaDevAttrMaxAccessPolicyWindowSize, 109) X(cudaDevAttrMaxBlockDimX, 2) \
  X(cudaDevAttrMaxBlockDimY, 3) X(cudaDevAttrMaxBlockDimZ, 4) X(cudaDevAttrMaxBlocksPerMultiprocessor, 106) \
  X(cudaDevAttrMaxGridDimX, 5) X(cudaDevAttrMaxGridDimY, 6) X(cudaDevAttrMaxGridDimZ, 7) \
  X(cudaDevAttrMaxPersistingL2CacheSize, 108) X(cudaDevAttrMaxPitch, 11) X(cudaDevAttrMaxRegistersPerBlock, 12) \
  X(cudaDevAttrMaxRegistersPerMultiprocessor, 82) X(cudaDevAttrMaxSharedMemoryPerBlock, 8) \
  X(cudaDevAttrMaxSharedMemoryPerBlockOptin, 97) X(cudaDevAttrMaxSharedMemoryPerMultiprocessor, 81) \
  X(cudaDevAttrMaxTexture1DWidth, 21) X(cudaDevAttrMaxTexture2DHeight, 23) X(cudaDevAttrMaxTexture2DWidth, 22) \
  X(cudaDevAttrMaxTexture3DDepth, 26) X(cudaDevAttrMaxTexture3DHeight, 25) X(cudaDevAttrMaxTexture3DWidth, 24) \
  X(cudaDevAttrMaxThreadsPerBlock, 1) X(cudaDevAttrMaxThreadsPerMultiProcessor, 39) \
  X(cudaDevAttrMemoryClockRate, 36) X(cudaDevAttrMemoryPoolsSupported, 115) \
  X(cudaDevAttrMultiGpuBoardGroupID, 85) X(cudaDevAttrMultiProcessorCount, 16) \
  X(cudaDevAttrPageableMemoryAccess, 88) X(cudaDevAttrPageableMemoryAccessUsesHostPageTables, 100) \
  X(cudaDevAttrPciBusId, 33) X(cudaDevAttrPciDeviceId, 34) X(cudaDevAttrPciDomainId, 50) \
  X(cudaDevAttrReservedSharedMemoryPerBlock, 111) X(cudaDevAttrSingleToDoublePrecisionPerfRatio, 87) \
  X(cudaDevAttrSparseCudaArraySupported, 112) X(cudaDevAttrStreamPrioritiesSupported, 78) \
  X(cudaDevAttrSurfaceAlignment, 30) X(cudaDevAttrTccDriver, 35) X(cudaDevAttrTextureAlignment, 14) \
  X(cudaDevAttrTexturePitchAlignment, 51) X(cudaDevAttrTotalConstantMemory, 9) \
  X(cudaDevAttrUnifiedAddressing, 41) X(cudaDevAttrWarpSize, 10) X(cudaDevP2PAttrAccessSupported, 2) \
  X(cudaDevP2PAttrCudaArrayAccessSupported, 4) X(cudaDevP2PAttrNativeAtomicSupported, 3) \
  X(cudaDevP2PAttrPerformanceRank, 1) X(cudaDeviceBlockingSync, 4) X(cudaDeviceLmemResizeToMax, 16) \
  X(cudaDeviceMapHost, 8) X(cudaDeviceMask, 255) X(cudaDeviceScheduleAuto, 0) \
  X(cudaDeviceScheduleBlockingSync, 4) X(cudaDeviceScheduleMask, 7) X(cudaDeviceScheduleSpin, 1) \
  X(cudaDeviceScheduleYield, 2) X(cudaDeviceSyncMemops, 128) X(cudaEventBlockingSync, 1) X(cudaEventDefault, 0) \
  X(cudaEventDisableTiming, 2) X(cudaEventInterprocess, 4) X(cudaEventRecordDefault, 0) \
  X(cudaEventRecordExternal, 1) X(cudaEventWaitDefault, 0) X(cudaEventWaitExternal, 1) \
  X(cudaFuncAttributeClusterDimMustBeSet, 10) X(cudaFuncAttributeClusterSchedulingPolicyPreference, 15) \
  X(cudaFuncAttributeMaxDynamicSharedMemorySize, 8) X(cudaFuncAttributeNonPortableClusterSizeAllowed, 14) \
  X(cudaFuncAttributePreferredSharedMemoryCarveout, 9) X(cudaFuncAttributeRequiredClusterDepth, 13) \
  X(cudaFuncAttributeRequiredClusterHeight, 12) X(cudaFuncAttributeRequiredClusterWidth, 11) \
  X(cudaFuncCachePreferEqual, 3) X(cudaFuncCachePreferL1, 2) X(cudaFuncCachePreferNone, 0) \
  X(cudaFuncCachePreferShared, 1) X(cudaGraphExecUpdateError, 1) \
  X(cudaGraphExecUpdateErrorAttributesChanged, 8) X(cudaGraphExecUpdateErrorFunctionChanged, 4) \
  X(cudaGraphExecUpdateErrorNodeTypeChanged, 3) X(cudaGraphExecUpdateErrorNotSupported, 6) \
  X(cudaGraphExecUpdateErrorParametersChanged, 5) X(cudaGraphExecUpdateErrorTopologyChanged, 2) \
  X(cudaGraphExecUpdateErrorUnsupportedFunctionChange, 7) X(cudaGraphExecUpdateSuccess, 0) \
  X(cudaGraphInstantiateFlagAutoFreeOnLaunch, 1) X(cudaGraphInstantiateFlagDeviceLaunch, 4) \
  X(cudaGraphInstantiateFlagUpload, 2) X(cudaGraphInstantiateFlagUseNodePriority, 8) \
  X(cudaGraphNodeTypeEmpty, 5) X(cudaGraphNodeTypeEventRecord, 7) X(cudaGraphNodeTypeGraph, 4) \
  X(cudaGraphNodeTypeHost, 3) X(cudaGraphNodeTypeKernel, 0) X(cudaGraphNodeTypeMemcpy, 1) \
  X(cudaGraphNodeTypeMemset, 2) X(cudaGraphNodeTypeWaitEvent, 6) X(cudaHostAllocDefault, 0) \
  X(cudaHostAllocMapped, 2) X(cudaHostAllocPortable, 1) X(cudaHostAllocWriteCombined, 4) \
  X(cudaHostRegisterDefault, 0) X(cudaHostRegisterIoMemory, 4) X(cudaHostRegisterMapped, 2) \
  X(cudaHostRegisterPortable, 1) X(cudaHostRegisterReadOnly, 8) X(cudaInitDeviceFlagsAreValid, 1) \
  X(cudaInvalidDeviceId, -2) X(cudaIpcMemLazyEnablePeerAccess, 1) X(cudaLaunchAttributeAccessPolicyWindow, 1) \
  \
  X(cudaLaunchAttributeCooperative, 2) X(cudaLaunchAttributeIgnore, 0) X(cudaLaunchAttributePriority, 8) \
  X(cudaLaunchAttributeProgrammaticEvent, 7) X(cudaLaunchAttributeProgrammaticStreamSerialization, 6) \
  X(cudaLaunchAttributeSynchronizationPolicy, 3) X(cudaLimitDevRuntimePendingLaunchCount, 4) \
  X(cudaLimitDevRuntimeSyncDepth, 3) X(cudaLimitMallocHeapSize, 2) X(cudaLimitMaxL2FetchGranularity, 5) \
  X(cudaLimitPersistingL2CacheSize, 6) X(cudaLimitPrintfFifoSize, 1) X(cudaLimitStackSize, 0) \
  X(cudaMemAccessFlagsProtNone, 0) X(cudaMemAccessFlagsProtRead, 1) X(cudaMemAccessFlagsProtReadWrite, 3) \
  X(cudaMemAdviseSetAccessedBy, 5) X(cudaMemAdviseSetPreferredLocation, 3) X(cudaMemAdviseSetReadMostly, 1) \
  X(cudaMemAdviseUnsetAccessedBy, 6) X(cudaMemAdviseUnsetPreferredLocation, 4) \
  X(cudaMemAdviseUnsetReadMostly, 2) X(cudaMemAllocationTypeInvalid, 0) X(cudaMemAllocationTypeManaged, 2) \
  X(cudaMemAllocationTypeMax, 2147483647) X(cudaMemAllocationTypePinned, 1) X(cudaMemAttachGlobal, 1) \
  X(cudaMemAttachHost, 2) X(cudaMemAttachSingle, 4) X(cudaMemHandleTypeFabric, 8) X(cudaMemHandleTypeNone, 0) \
  X(cudaMemHandleTypePosixFileDescriptor, 1) X(cudaMemHandleTypeWin32, 2) X(cudaMemHandleTypeWin32Kmt, 4) \
  X(cudaMemLocationTypeDevice, 1) X(cudaMemLocationTypeHost, 2) X(cudaMemLocationTypeHostNuma, 3) \
  X(cudaMemLocationTypeHostNumaCurrent, 4) X(cudaMemLocationTypeInvalid, 0) X(cudaMemLocationTypeNone, 0) \
  X(cudaMemPoolAttrReleaseThreshold, 4) X(cudaMemPoolAttrReservedMemCurrent, 5) \
  X(cudaMemPoolAttrReservedMemHigh, 6) X(cudaMemPoolAttrUsedMemCurrent, 7) X(cudaMemPoolAttrUsedMemHigh, 8) \
  X(cudaMemPoolReuseAllowInternalDependencies, 3) X(cudaMemPoolReuseAllowOpportunistic, 2) \
  X(cudaMemPoolReuseFollowEventDependencies, 1) X(cudaMemRangeAttributeAccessedBy, 3) \
  X(cudaMemRangeAttributeLastPrefetchLocation, 4) X(cudaMemRangeAttributeLastPrefetchLocationId, 8) \
  X(cudaMemRangeAttributeLastPrefetchLocationType, 7) X(cudaMemRangeAttributePreferredLocation, 2) \
  X(cudaMemRangeAttributePreferredLocationId, 6) X(cudaMemRangeAttributePreferredLocationType, 5) \
  X(cudaMemRangeAttributeReadMostly, 1) X(cudaMemcpyDefault, 4) X(cudaMemcpyDeviceToDevice, 3) \
  X(cudaMemcpyDeviceToHost, 2) X(cudaMemcpyHostToDevice, 1) X(cudaMemcpyHostToHost, 0) \
  X(cudaMemoryTypeDevice, 2) X(cudaMemoryTypeHost, 1) X(cudaMemoryTypeManaged, 3) \
  X(cudaMemoryTypeUnregistered, 0) X(cudaNvSciSyncAttrSignal, 1) X(cudaNvSciSyncAttrWait, 2) \
  X(cudaOccupancyDefault, 0) X(cudaOccupancyDisableCachingOverride, 1) X(cudaPeerAccessDefault, 0) \
  X(cudaSharedMemBankSizeDefault, 0) X(cudaSharedMemBankSizeEightByte, 2) X(cudaSharedMemBankSizeFourByte, 1) \
  X(cudaSharedmemCarveoutDefault, -1) X(cudaSharedmemCarveoutMaxL1, 0) X(cudaSharedmemCarveoutMaxShared, 100) \
  X(cudaStreamAttributeAccessPolicyWindow, 1) X(cudaStreamAttributePriority, 8) \
  X(cudaStreamAttributeSynchronizationPolicy, 3) X(cudaStreamCaptureModeGlobal, 0) \
  X(cudaStreamCaptureModeRelaxed, 2) X(cudaStreamCaptureModeThreadLocal, 1) X(cudaStreamCaptureStatusActive, 1) \
  X(cudaStreamCaptureStatusInvalidated, 2) X(cudaStreamCaptureStatusNone, 0) X(cudaStreamDefault, 0) \
  X(cudaStreamLegacy, 1) X(cudaStreamNonBlocking, 1) X(cudaStreamPerThread, 2) X(cudaSyncPolicyAuto, 1) \
  X(cudaSyncPolicyBlockingSync, 4) X(cudaSyncPolicySpin, 2) X(cudaSyncPolicyYield, 3)
// clang-format on

static void test_numbers(void **state) {
  (void)state;
#define CHECK_NUMBER(name, number) \
  if ((long long)name != (number)) fail_msg(#name " is %lld, not %lld", (long long)name, (long long)(number));
  CONSTANTS(CHECK_NUMBER)
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
