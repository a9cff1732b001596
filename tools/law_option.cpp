// Laws by id, number or group.
#include "law_option.h"

#include <algorithm>

#include "lamella/dispatch/nearest.h"

namespace lamella::tools {

std::vector<const verify::Law*> laws_named(const std::vector<std::string>& words) {
  std::vector<const verify::Law*> out;
  for (const std::string& word : words) {
    const size_t before = out.size();
    std::vector<std::string_view> names;
    for (const verify::Law& law : verify::laws()) {
      if (law.id == word || law.group == word || std::to_string(law.number) == word) out.push_back(&law);
      for (const std::string_view name : {law.id, law.group})
        if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
    LAMELLA_CHECK(out.size() > before, Usage, "there is no law or group \"{}\"{}; see lamella verify --list",
                  word, nearest_text(word, names));
  }
  return out;
}

}  // namespace lamella::tools
