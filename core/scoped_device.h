// A device that is there for a while: what laws and tests compute beside.
#pragma once

#include "lamella/core/device_hooks.h"

LAMELLA_API_BEGIN
namespace lamella {

/// Gives a Device that has no hooks these ones, for a scope. No other thread may use the device meanwhile;
/// its memory may outlive the scope, and then the hooks have to. add_device is for good.
class ScopedDevice {
 public:
  ScopedDevice(Device device, const DeviceHooks& hooks);
  ~ScopedDevice();
  ScopedDevice(const ScopedDevice&) = delete;
  ScopedDevice& operator=(const ScopedDevice&) = delete;

 private:
  Device device_;
};

}  // namespace lamella
LAMELLA_API_END
